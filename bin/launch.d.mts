export const oldestNode: { readonly checkout: readonly string[]; readonly package: readonly string[] }
export function launch(
  script: string,
  args: readonly string[],
  how?: { isProgram?: boolean; takesSignals?: boolean },
): Promise<void>
export function isNewEnough(version: string, oldest: readonly string[]): boolean
