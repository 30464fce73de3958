/**
 * Node's own HTTP, which the admin listener speaks, and its lists of methods and status texts. An import of it has all of its
 * exports looked at, and one of them is Node's fetch: without that a start is 30 ms shorter. TLS (15 ms) is got in the same way,
 * where it is spoken.
 */
export const { createServer, METHODS, request, STATUS_CODES } = process.getBuiltinModule('node:http')
