/**
 * Chooses the test files that `npm test` runs. Files are taken in the order of the table until the next one would pass
 * the limit. Files that the table does not list are chosen too, because nobody has measured them. Rows of files that no
 * longer exist do not count.
 * @param files all test files
 * @param secondsOf the processor seconds of each file, in the order in which files are taken (scripts/test-order.ts)
 * @returns the chosen files, in the order of `files`
 */
export function chooseWithin(
  files: readonly string[],
  secondsOf: Readonly<Record<string, number>>,
  limitSeconds: number,
): string[] {
  const chosen = new Set(files.filter((file) => secondsOf[file] === undefined))
  let left = limitSeconds
  for (const [file, seconds] of Object.entries(secondsOf)) {
    if (!files.includes(file)) continue
    left -= seconds
    if (left < 0) break
    chosen.add(file)
  }
  return files.filter((file) => chosen.has(file))
}
