import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * Names the loopback interface of this process: two processes with one name reach each other at 127.0.0.1. Containers of one
 * machine have network namespaces of their own (Linux, network_namespaces(7)). Other systems have one interface for each host.
 */
export function nameLoopback(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/net')}`
  } catch {
    return hostname()
  }
}
