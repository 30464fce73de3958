/**
 * Whether a refusal passes without a change by the person: the gateway, or a proxy before it, could not answer, or was
 * asked too often. The status 0 stands for no answer.
 */
export function mayPass(status: number): boolean {
  return status === 0 || status === 429 || status >= 500
}
