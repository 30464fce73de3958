export async function tryImage(): Promise<string[]> {
  return []
}
