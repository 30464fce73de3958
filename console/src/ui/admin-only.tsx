import type { ComponentChildren } from 'preact'
import { isDemo } from '../demo.ts'
import { isAdmin } from '../session.ts'

/** Actions of admins. Viewers read which they are instead. @param acts what admins can do here: `credit accounts` */
export function AdminOnly({ acts, children }: { acts: string; children: ComponentChildren }) {
  if (isAdmin()) return <>{children}</>
  if (isDemo.value) return null
  return <span class="small lacks">Only admins can {acts}.</span>
}
