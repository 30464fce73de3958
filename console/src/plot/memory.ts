/** The last colour of each id, as long as the tab is open. */
export const colourMemory = new Map<string, number>()
