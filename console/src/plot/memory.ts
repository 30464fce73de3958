/** Which colour what had last, as long as the tab is open. */
export const colourMemory = new Map<string, number>()
