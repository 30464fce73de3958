/** The lengths of the parts of an agent's requests in a task of six turns, in characters. */
export type Shape = { system: number; tools: number[]; task: number; results: number[][] }

/** Lengths that were measured on real agents (clients/unnamed.ts). */
export const shapes: Record<string, Shape> = {
  'droid 0.215.0': {
    system: 4181,
    tools: [1142, 752, 3674, 966, 3019, 1468, 545, 1276, 525, 1312, 405, 2143, 3390],
    task: 8191,
    results: [[160, 160], [142], [105], [158], [142, 143]],
  },
  'cn 1.5.47': {
    system: 1378,
    tools: [227, 312, 206, 674, 260, 586, 427, 837, 1542, 155, 463],
    task: 33,
    results: [[146, 147], [106], [154], [126], [110, 111]],
  },
  'cline 3.0.65': {
    system: 5252,
    tools: [2163, 1398, 2115, 2631],
    task: 286,
    results: [[240, 241], [172], [195], [201], [184, 185]],
  },
}

/** Returns a text of words with this number of characters. */
export const filler = (characters: number) => 'word '.repeat(Math.ceil(characters / 5)).slice(0, characters)
