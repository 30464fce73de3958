import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { type Node, parse } from 'acorn'
import { transformSync } from 'esbuild'

const folder = join(import.meta.dirname, '../../console/src')

test('buttons that alternate in one place each have a key', () => {
  const files = globSync('**/*.tsx', { cwd: folder })
  assert.ok(files.length > 30)
  assert.deepEqual(
    files.flatMap((file) => unkeyed(readFileSync(join(folder, file), 'utf8')).map((why) => `${file}: ${why}`)),
    [],
  )
})

test('the check finds buttons that alternate in one place', () => {
  const at = (children: string) => unkeyed(`export const a = (is: boolean) => <div>${children}</div>`).length
  assert.equal(at('{is ? <button>A</button> : <button>B</button>}'), 1)
  assert.equal(at('{is ? <button key="a">A</button> : <button>B</button>}'), 1)
  assert.equal(at('{is ? <button key="a">A</button> : <button key="a">B</button>}'), 1)
  assert.equal(at('{is ? <button key="a">A</button> : <button key="b">B</button>}'), 0)
  assert.equal(at('{is ? <p>A</p> : <button>B</button>}'), 0)
  assert.equal(at('{is && <button>A</button>}<button>B</button>'), 1)
  assert.equal(at('{is && <button key="a">A</button>}<button>B</button>'), 0)
  assert.equal(at('{is && <button>A</button>}'), 0)
})

// biome-ignore lint/suspicious/noExplicitAny: nodes of every kind are walked.
type Any = any

/**
 * The framework takes one button for the other where nothing tells them apart: a click that changes which of them stands there then
 * goes on as a click on the other one, which may send the form.
 */
function unkeyed(source: string): string[] {
  const { code } = transformSync(source, { loader: 'tsx', jsx: 'automatic', jsxImportSource: 'preact' })
  const found: string[] = []
  walk(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), (node) => {
    if (node.type === 'ConditionalExpression') {
      const [one, other] = [buttonOf(node.consequent), buttonOf(node.alternate)]
      if (one && other && (!one.key || !other.key || one.key === other.key))
        found.push(`${code.slice(node.start, node.end)}`)
    }
    if (node.type !== 'ArrayExpression') return
    const children: Any[] = node.elements
    for (const child of children) {
      const mayBe = child?.type === 'LogicalExpression' ? buttonOf(child.right) : undefined
      const others = children.filter((one) => one !== child && holdsButton(one))
      if (mayBe && !mayBe.key && others.length > 0) found.push(code.slice(child.start, child.end))
    }
  })
  return found
}

function holdsButton(node: Any): boolean {
  if (node?.type === 'LogicalExpression') return holdsButton(node.right)
  if (node?.type === 'ConditionalExpression') return holdsButton(node.consequent) || holdsButton(node.alternate)
  return buttonOf(node) !== undefined
}

/** A call that makes a button, and the key in it. */
function buttonOf(node: Any): { key: string | undefined } | undefined {
  const isMade = node?.type === 'CallExpression' && /^_?jsxs?$/.test(node.callee.name ?? '')
  return isMade && node.arguments[0]?.value === 'button' ? { key: node.arguments[2]?.value } : undefined
}

function walk(node: Any, visit: (node: Any) => void): void {
  if (Array.isArray(node)) for (const one of node) walk(one, visit)
  else if (node && typeof (node as Node).type === 'string') {
    visit(node)
    for (const member of Object.values(node)) if (member && typeof member === 'object') walk(member, visit)
  }
}
