import { type AnyNode, type Expression, type Node, parse } from 'acorn'

/** One change to one file. */
export type Mutant = {
  id: number
  /** The path from the root of the project, with slashes. */
  file: string
  line: number
  /** The function around it. Accepted survivors are found by this name, since lines move. */
  within: string
  operator: string
  before: string
  after: string
  /** The position in the code without types, which is the same as in the code with them. */
  start: number
  end: number
  /** An expression is replaced, a statement is left out, or a body returns before its first statement. */
  kind: 'expression' | 'statement' | 'body'
}

type Found = Omit<Mutant, 'id' | 'file' | 'line' | 'within' | 'before'>
type Change = (operator: string, after: string) => void

const flipped: Record<string, readonly string[]> = {
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '/=': ['*='],
  '&&=': ['||='],
  '||=': ['&&='],
  '??=': ['&&='],
}

/** Methods with their replacements. An empty text removes the call: `list.filter(f)` becomes `list`. */
const methods: Record<string, string> = {
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  toLowerCase: 'toUpperCase',
  toUpperCase: 'toLowerCase',
  filter: '',
  slice: '',
  trim: '',
  sort: '',
  reverse: '',
}

/** An arrow function with such a body is called for its effect. */
const effects = new Set(['CallExpression', 'ChainExpression', 'AssignmentExpression', 'AwaitExpression'])

/** Finds every change to make in a file, in the order of the source. @param code without types */
export function findMutants(file: string, code: string): Omit<Mutant, 'id'>[] {
  const program = parse(code, { ecmaVersion: 'latest', sourceType: 'module', locations: true })
  const found: Omit<Mutant, 'id'>[] = []
  visit(program, undefined, '')
  return found

  function visit(node: AnyNode, parent: AnyNode | undefined, within: string): void {
    const inside = nameOf(node, parent, code) ?? within
    for (const { operator, after, ...place } of changesOf(node, parent, code)) {
      const before = oneLine(code.slice(place.start, place.end))
      const { line } = node.loc!.start
      found.push({ file, line, within: inside, operator, before, after, ...place })
    }
    for (const child of childrenOf(node)) visit(child, node, inside)
  }
}

/** Shortens code to one line of a report. */
export function oneLine(code: string): string {
  const text = code.replaceAll(/\s+/g, ' ').trim()
  return text.length > 100 ? `${text.slice(0, 97)}...` : text
}

function changesOf(node: AnyNode, parent: AnyNode | undefined, code: string): Found[] {
  const found: Found[] = []
  const text = (part: Node) => code.slice(part.start, part.end)
  const swap = (part: Node): Change => {
    return (operator, after) => found.push({ operator, after, start: part.start, end: part.end, kind: 'expression' })
  }
  const change = swap(node)
  switch (node.type) {
    case 'IfStatement':
    case 'ConditionalExpression':
      swap(node.test)('condition', 'true')
      swap(node.test)('condition', 'false')
      break
    case 'WhileStatement':
    case 'ForStatement':
      // A loop condition is never replaced by `true`, because the loop would not end.
      if (node.test) swap(node.test)('loop', 'false')
      break
    case 'ForOfStatement':
      swap(node.right)('loop', '[]')
      break
    case 'BinaryExpression':
    case 'LogicalExpression': {
      if (node.left.type === 'PrivateIdentifier') break
      const at = code.indexOf(node.operator, node.left.end)
      let [left, right] = [code.slice(node.start, at), code.slice(at + node.operator.length, node.end)]
      // `??` may stand beside `&&` and `||` only in parentheses.
      if (node.type === 'LogicalExpression') [left, right] = [`(${left.trim()}) `, ` (${right.trim()})`]
      for (const other of flipped[node.operator] ?? []) {
        change(node.type === 'BinaryExpression' ? 'comparison or sum' : 'logic', left + other + right)
      }
      break
    }
    case 'AssignmentExpression':
      for (const other of flipped[node.operator] ?? []) {
        const at = code.indexOf(node.operator, node.left.end)
        change('assignment', code.slice(node.start, at) + other + code.slice(at + node.operator.length, node.end))
      }
      break
    case 'UpdateExpression':
      if (parent?.type === 'ForStatement') break
      change('update', text(node).replace(node.operator, node.operator === '++' ? '--' : '++'))
      break
    case 'UnaryExpression':
      if (node.operator === '!') change('negation', text(node.argument))
      if (node.operator === '-') change('sign', text(node.argument))
      break
    case 'Literal':
      if (isFixed(node, parent)) break
      if (typeof node.value === 'boolean') change('boolean', String(!node.value))
      if (typeof node.value === 'string') change('text', node.value === '' ? "'mutated'" : "''")
      break
    case 'TemplateLiteral':
      if (parent?.type !== 'TaggedTemplateExpression' && !isFixed(node, parent)) change('text', '``')
      break
    case 'ArrayExpression':
      if (node.elements.length > 0) change('list', '[]')
      break
    case 'ObjectExpression':
      if (node.properties.length > 0) change('object', '{}')
      break
    case 'ChainExpression':
      for (const at of optionalMarks(node.expression, code)) {
        const after = code[at + 2] === '[' || code[at + 2] === '(' ? '' : '.'
        change('optional chain', code.slice(node.start, at) + after + code.slice(at + 2, node.end))
      }
      break
    case 'CallExpression': {
      const { callee } = node
      if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier' || callee.computed) break
      const other = Object.hasOwn(methods, callee.property.name) ? methods[callee.property.name] : undefined
      if (other === undefined || isInChain(node, parent)) break
      const rest = code.slice(callee.property.end, node.end)
      change(
        'method',
        other === '' ? text(callee.object) : code.slice(node.start, callee.property.start) + other + rest,
      )
      break
    }
    case 'ExpressionStatement':
      // Each statement gets a switch, so that none begins with the parenthesis of an expression's switch. The line
      // before has no semicolon, so that parenthesis would be read as a call.
      if (node.directive === undefined && !isSuper(node.expression)) {
        found.push({ operator: 'statement', after: '', start: node.start, end: node.end, kind: 'statement' })
      }
      break
    case 'ArrowFunctionExpression':
      if (effects.has(node.body.type)) swap(node.body)('body', 'undefined')
      else emptyBody(node.body)
      break
    case 'FunctionDeclaration':
    case 'FunctionExpression':
      emptyBody(node.body)
      break
  }
  return found

  function emptyBody(body: AnyNode): void {
    if (body.type !== 'BlockStatement' || body.body.length === 0) return
    // Another change already leaves out the only statement of this body.
    if (body.body.length === 1 && body.body[0]!.type === 'ExpressionStatement') return
    found.push({ operator: 'body', after: '{}', start: body.start, end: body.end, kind: 'body' })
  }
}

/** Whether a text is a name and not a value, or a message for developers about a case that cannot happen. */
function isFixed(node: AnyNode, parent: AnyNode | undefined): boolean {
  switch (parent?.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'ImportExpression':
    case 'ImportAttribute':
      return true
    case 'ExpressionStatement':
      return true
    case 'Property':
    case 'PropertyDefinition':
    case 'MethodDefinition':
      return parent.key === node && !parent.computed
    case 'NewExpression':
      return parent.callee.type === 'Identifier' && (parent.callee.name === 'Error' || parent.callee.name === 'URL')
    default:
      return false
  }
}

/** Whether a node is in a chain such as `a?.b.c()`. Only whole chains are replaced. A part would fail without `a`. */
function isInChain(node: AnyNode, parent: AnyNode | undefined): boolean {
  if (parent?.type === 'ChainExpression') return true
  return (parent?.type === 'MemberExpression' && parent.object === node) || optionalMarks(node, '').length > 0
}

/** The positions of the `?.` of a chain. */
function optionalMarks(node: AnyNode, code: string): number[] {
  const marks: number[] = []
  for (let at: AnyNode = node; ; ) {
    if (at.type !== 'MemberExpression' && at.type !== 'CallExpression') return marks
    const inner = (at.type === 'CallExpression' ? at.callee : at.object) as AnyNode
    if (at.optional) marks.push(code.indexOf('?.', inner.end))
    at = inner
  }
}

function isSuper(node: Expression): boolean {
  return node.type === 'CallExpression' && node.callee.type === 'Super'
}

function nameOf(node: AnyNode, parent: AnyNode | undefined, code: string): string | undefined {
  if (node.type === 'FunctionDeclaration') return node.id?.name
  if (node.type === 'MethodDefinition' || node.type === 'PropertyDefinition') {
    return code.slice(node.key.start, node.key.end)
  }
  const isFunction = node.type === 'ArrowFunctionExpression' || node.type === 'FunctionExpression'
  if (isFunction && parent?.type === 'VariableDeclarator') return code.slice(parent.id.start, parent.id.end)
  if (isFunction && parent?.type === 'Property') return code.slice(parent.key.start, parent.key.end)
  return undefined
}

function childrenOf(node: AnyNode): AnyNode[] {
  const children = Object.entries(node).flatMap(([, value]) => (Array.isArray(value) ? value : [value]))
  const nodes = children.filter((child) => typeof child?.type === 'string' && typeof child.start === 'number')
  return nodes.sort((one, other) => one.start - other.start)
}
