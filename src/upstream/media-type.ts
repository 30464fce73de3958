/** Returns the media type of a `content-type` in lower case, without parameters; `''` if there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  if (contentType === undefined) return ''
  const semicolon = contentType.indexOf(';')
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
}
