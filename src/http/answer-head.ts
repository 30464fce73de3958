import { STATUS_CODES } from '../node-http.ts'
import { httpDate } from './http-date.ts'

/**
 * The head of an answer, with its last empty line.
 * @param lines headers of it, each with its end
 * @param connection what becomes of its connection, as that header says it, and what others say beside it
 */
export function answerHead(status: number, lines: string, connection: string): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}date: ${httpDate()}\r\nconnection: ${connection}\r\n\r\n`
}
