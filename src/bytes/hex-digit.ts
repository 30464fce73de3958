/** Returns the value of a hexadecimal digit in upper or lower case; -1 for any other octet and for undefined. */
export function hexDigit(octet: number | undefined): number {
  if (octet === undefined) return -1
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30
  const letter = octet | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
