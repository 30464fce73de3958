import { spawnSync } from 'node:child_process'

/** A Python with packages from PyPI: `TRIWIRE_TEST_PYTHON`, else the one on the path. */
const python = process.env['TRIWIRE_TEST_PYTHON'] ?? 'python3'

/**
 * For `skip` of a test. If TRIWIRE_TEST_PYTHON names a Python, nothing is skipped. @param module the one that the test
 * needs @param distribution its package on PyPI @returns the reason to skip, or false
 */
export function withoutPython(module: string, distribution: string): string | false {
  if (process.env['TRIWIRE_TEST_PYTHON']) return false
  const { status } = spawnSync(python, ['-c', `import ${module}`])
  if (status === 0) return false
  return `no Python has ${distribution} (pip install ${distribution}; name it in TRIWIRE_TEST_PYTHON): nothing is shown of what others read`
}

/** Runs a script with lines on its stdin. @returns the lines of its output. @throws its stderr if it fails */
export function runPython(script: string, lines: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync(python, [script], { input: lines.join('\n'), encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout.trim().split('\n')
}
