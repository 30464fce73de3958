import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { sha256Base62, sha256Hex } from '../src/ids.ts'
import { type Listed, Register, Roster } from '../src/registers.ts'

const steps = fc.array(fc.record({ adds: fc.boolean(), which: fc.nat(7) }), { maxLength: 60 })

test('decision 51 a register has the entries that a Map would have, in the same order', () => {
  // Beyond the number after which another Map takes over.
  const many = fc.array(fc.record({ adds: fc.boolean(), which: fc.nat(7) }), { minLength: 150, maxLength: 300 })
  fc.assert(
    fc.property(fc.oneof(steps, many), (steps) => {
      const [register, map] = [new Register<number>(), new Map<string, number>()]
      for (const [at, { adds, which }] of steps.entries()) {
        // Some names that objects have by themselves.
        const id = ['__proto__', 'constructor', 'toString'][which] ?? `req_${which}`
        if (adds) {
          register.set(id, at)
          map.set(id, at)
        } else assert.equal(register.delete(id), map.delete(id))
        assert.deepEqual([...register.values()], [...map.values()])
        assert.deepEqual([register.size, register.has(id), register.get(id)], [map.size, map.has(id), map.get(id)])
      }
    }),
  )
})

test('decision 51 a roster has the members that a Set would have', () => {
  fc.assert(
    fc.property(steps, (steps) => {
      const items: Listed[] = Array.from({ length: 8 }, () => ({ place: undefined }))
      const [roster, set] = [new Roster<Listed>(), new Set<Listed>()]
      for (const { adds, which } of steps) {
        for (const one of [roster, set]) adds ? one.add(items[which]!) : one.delete(items[which]!)
        assert.equal(roster.size, set.size)
        assert.deepEqual(new Set(roster), set)
      }
    }),
  )
})

test('decision 51 a member that leaves a roster during an iteration is not visited, and no member is visited twice', () => {
  const items = Array.from({ length: 5 }, (_, number) => ({ number, place: undefined as number | undefined }))
  const roster = new Roster<(typeof items)[number]>()
  for (const item of items) roster.add(item)
  const visited: number[] = []
  for (const { number } of roster) {
    visited.push(number)
    roster.delete(items[number]!)
    roster.delete(items[3]!)
  }
  assert.deepEqual([visited, roster.size], [[0, 1, 2, 4], 0])
})

test('R-ID digits of a digest are those of the whole number in base 62, the last first', () => {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 42 }), (text, length) => {
      let rest = BigInt(`0x${sha256Hex(text)}`)
      let expected = ''
      for (let i = 0; i < length; i++, rest /= 62n) expected += digits[Number(rest % 62n)]
      assert.equal(sha256Base62(text, length), expected)
    }),
  )
})
