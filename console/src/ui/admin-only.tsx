import type { ComponentChildren } from 'preact'
import { isDemo } from '../demo.ts'
import { isAdmin } from '../session.ts'

/** Shows actions to admins only. Others read what admins can do. @param acts the actions in words: `credit accounts` */
export function AdminOnly({ acts, children }: { acts: string; children: ComponentChildren }) {
  if (isAdmin()) return <>{children}</>
  if (isDemo.value) return null
  return <span class="small lacks">Only admins can {acts}.</span>
}
