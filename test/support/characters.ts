import fc from 'fast-check'

/*
 * A unit of `fc.string` for texts of any characters. It has the alphabet of fast-check's `binary`, which makes a table
 * of all 1,112,064 characters first. That took a second in each process.
 */

const surrogates = { first: 0xd800, count: 0x800 }

export const characters = fc.nat({ max: 0x10ffff - surrogates.count }).map(
  (index) => String.fromCodePoint(index < surrogates.first ? index : index + surrogates.count),
  (character) => {
    const point = typeof character === 'string' ? character.codePointAt(0) : undefined
    if (point === undefined || String.fromCodePoint(point) !== character) throw new Error('it is not one character')
    return point < surrogates.first ? point : point - surrogates.count
  },
)
