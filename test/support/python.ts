import { spawnSync } from 'node:child_process'

/** The Python with packages from PyPI: `TRIWIRE_TEST_PYTHON`, or else `python3` in PATH. */
const python = process.env['TRIWIRE_TEST_PYTHON'] ?? 'python3'

/**
 * For `skip` of a test. If TRIWIRE_TEST_PYTHON names a Python, nothing is skipped.
 * @param module the required one
 * @param distribution its package on PyPI
 * @returns the reason to skip, or false
 */
export function withoutPython(module: string, distribution: string): string | false {
  if (process.env['TRIWIRE_TEST_PYTHON']) return false
  const { status } = spawnSync(python, ['-c', `import ${module}`])
  if (status === 0) return false
  return `no Python has ${distribution} (pip install ${distribution}; name it in TRIWIRE_TEST_PYTHON): nothing is shown of what others read`
}

/** Runs a script with lines on stdin. @returns the lines of its output @throws Error with its stderr if it fails */
export function runPython(script: string, lines: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync(python, [script], { input: lines.join('\n'), encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout.trim().split('\n')
}
