import { tryImage } from '../image/try.ts'

export async function inContainer(): Promise<string[]> {
  return tryImage()
}
