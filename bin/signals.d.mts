export function takeSignals(take: (signal: NodeJS.Signals) => void): void
export function releaseSignals(): void
