/**
 * Whether a connection takes another message after this one (RFC 9112 9.3). With HTTP/1.1 it does unless the head says
 * otherwise. With HTTP/1.0 it does not unless the head says so.
 * @param connection value of that header: options in any case, divided by commas
 * @param minor of the version: HTTP/1.0 or HTTP/1.1
 */
export function staysOpen(connection: string | undefined, minor: number): boolean {
  if (connection === undefined) return minor > 0
  const options = connection.toLowerCase().split(',')
  const says = (option: string) => options.some((one) => one.trim() === option)
  return !says('close') && (minor > 0 || says('keep-alive'))
}
