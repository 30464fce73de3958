export { decodeRequest } from './decode-request.ts'
export { readEcho } from './echo.ts'
export { encodeRequest } from './encode-request.ts'
