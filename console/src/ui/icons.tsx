/* Drawings on a grid of 16, with lines as wide as the text's. */

const drawings = {
  overview: 'M2.5 13.5v-4M6 13.5v-7M9.5 13.5V8M13 13.5v-11',
  finance: 'M3 2.500h10v11l-2.500-1.500L8 13.500 5.500 12 3 13.500zM5.500 5.500h5M5.500 8.500h5',
  requests: 'M2.5 4h11M2.5 8h7.5M2.5 12h9.5',
  accounts: 'M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.4-2.6 2.400-4 5-4s4.600 1.400 5 4',
  keys: 'M5.200 13.200a2.700 2.700 0 1 0 0-5.400 2.700 2.700 0 0 0 0 5.400zM7.200 8.700l5.800-5.900M10.600 5.200l2.200 2.200',
  models: 'M8 2l5.200 3v6L8 14l-5.200-3V5zM8 8l5.200-3M8 8v6M8 8L2.800 5',
  upstreams: 'M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01',
  playground: 'M4.500 3l8 5-8 5z',
  translate: 'M2.500 5.500h10M9.500 2.500l3 3-3 3M13.500 10.500h-10M6.500 7.500l-3 3 3 3',
  setup:
    'M2.500 4.500h5M11 4.500h2.500M2.500 11.500H5M8.500 11.500h5M9.300 6.200a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400zM6.700 13.200a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400z',
  webhooks: 'M4 11V7a4 4 0 0 1 8 0v4l1.500 1.500h-11zM6.700 14.500h2.600',
  audit: 'M4 2.500h6l2.500 2.500v8.500H4zM6 7h4.500M6 10h4.500',
  operators: 'M8 1.800l5 2v4c0 3-2 5.400-5 6.400-3-1-5-3.400-5-6.400v-4zM5.800 8l1.600 1.600 3-3.200',
  people:
    'M6 7.500a2.200 2.200 0 1 0 0-4.400 2.200 2.200 0 0 0 0 4.400zM1.800 13c.3-2.300 2-3.500 4.200-3.500s3.900 1.200 4.200 3.500M10.500 7.300a2 2 0 1 0 0-4M12 9.700c1.300.5 2.100 1.600 2.300 3.300',
  sessions: 'M2.500 3.500h11v7h-11zM5.500 13.500h5M8 10.500v3M6 7l1.500 1.500L10.500 5.500',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.600 10.600L14 14',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500v1.300M8 13.200v1.300M1.500 8h1.300M13.200 8h1.300M3.400 3.400l.9.900M11.700 11.700l.9.900M12.600 3.400l-.9.900M4.300 11.700l-.9.900',
  moon: 'M13 9.600A5.600 5.600 0 0 1 6.400 3 5.500 5.500 0 1 0 13 9.600z',
  auto: 'M8 2.500v11M8 2.500a5.500 5.500 0 0 0 0 11 5.500 5.500 0 0 0 0-11z',
  more: 'M3.500 8h.01M8 8h.01M12.500 8h.01',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  check: 'M3 8.500l3.200 3.200L13 4.800',
  close: 'M4 4l8 8M12 4l-8 8',
  table: 'M2.500 3.500h11v9h-11zM2.500 6.500h11M6.500 6.500v6',
  download: 'M8 2.500v7M5 7l3 3 3-3M3 13.500h10',
  plus: 'M8 3v10M3 8h10',
  link: 'M6.700 9.300a2.500 2.500 0 0 0 3.600 0l2.500-2.500a2.540 2.540 0 0 0-3.600-3.600l-.8.800M9.300 6.700a2.500 2.500 0 0 0-3.600 0L3.200 9.200a2.540 2.540 0 0 0 3.600 3.600l.8-.8',
  signout: 'M6.500 13.500h-3v-11h3M10 11l3-3-3-3M13 8H6',
  help: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6.300 6.300a1.700 1.700 0 1 1 2.500 1.500c-.5.300-.8.600-.8 1.200M8 11.200h.01',
  ready: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM5.500 8.200l1.800 1.800 3.200-3.800',
  waiting: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.200l2.200 1.300',
  trouble: 'M8 2.500l6 11H2zM8 6.500v3.200M8 11.700h.01',
  off: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM4 12l8-8',
  trial: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM5 8h.01M8 8h.01M11 8h.01',
  back: 'M9.500 3.500L5 8l4.500 4.500',
  curl: 'M3 4.500L6.500 8 3 11.500M8 12h5.500',
} as const

export type IconName = keyof typeof drawings

/** Draws an icon. It stands beside words, so screen readers skip it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={drawings[name]} />
    </svg>
  )
}

/** The logo: three wires that meet. */
export function Logo() {
  return (
    <svg class="logo" width="22" height="22" viewBox="0 0 22 22" aria-hidden="true" focusable="false">
      <path class="logo-1" d="M2 4h5c4 0 4 7 8 7h5" />
      <path class="logo-2" d="M2 11h18" />
      <path class="logo-3" d="M2 18h5c4 0 4-7 8-7h5" />
    </svg>
  )
}
