export { decodeRequest } from './decode-request.ts'
export { encodeRequest } from './encode-request.ts'
