import { httpDate } from './http-date.ts'

/** The reason phrase of every status that the server sends (RFC 9110 15; 428, 429 and 431: RFC 6585). */
const reasons: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  204: 'No Content',
  304: 'Not Modified',
  307: 'Temporary Redirect',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  422: 'Unprocessable Entity',
  426: 'Upgrade Required',
  428: 'Precondition Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
}

/**
 * The head of an answer, with the empty line that ends it.
 * @param lines headers of the answer, each with its line end
 * @param connection value of the `connection` header, and after it any headers that go with it
 */
export function answerHead(status: number, lines: string, connection: string): string {
  // An empty phrase is allowed (RFC 9112 4).
  return `HTTP/1.1 ${status} ${reasons[status] ?? ''}\r\n${lines}date: ${httpDate()}\r\nconnection: ${connection}\r\n\r\n`
}
