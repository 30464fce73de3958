import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'

// What scripts/site.ts found in the repository: the version, the other versions of the site, and the index of the pages.
const { version, versions, sidebar } = JSON.parse(readFileSync(new URL('../.pages/site.json', import.meta.url), 'utf8'))

export default defineConfig({
  title: 'triwire',
  description: 'An HTTP gateway in front of many language models',
  lang: 'en',
  base: `/${version}/`,
  srcDir: '.pages',
  outDir: `dist/${version}`,
  cleanUrls: false,
  // Links to pages are checked here, links to sections by scripts/site-trials.ts.
  ignoreDeadLinks: false,
  markdown: {
    // Pages have no HTML of their own: `<id>` in a sentence is text.
    html: false,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    // The same anchors as in the repository's links: letters, digits, `-` and `_`; blanks become `-`.
    anchor: {
      slugify: (text: string) =>
        text
          .trim()
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, '')
          .replace(/\s/g, '-'),
    },
    languageAlias: { caddyfile: 'nginx', haproxy: 'nginx' },
    // A picture is loaded when it comes into view.
    image: { lazyLoading: true },
    config(md) {
      // A wide table scrolls by itself, by keyboard too.
      md.renderer.rules.table_open = () => '<div class="wide" tabindex="0"><table>\n'
      md.renderer.rules.table_close = () => '</table></div>\n'
      // A column without a heading has no heading for screen readers either.
      const tag = (content: string) => (content === '' ? 'td' : 'th')
      md.renderer.rules.th_open = (tokens, at) => `<${tag(tokens[at + 1]!.content)}>`
      md.renderer.rules.th_close = (tokens, at) => `</${tag(tokens[at - 1]!.content)}>\n`
    },
  },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { fuzzy: 0.15, prefix: true } } } },
    nav: [
      { text: 'Quickstart', link: '/docs/quickstart' },
      { text: 'Admin API', link: '/api/' },
      // VitePress puts the base of this version before each link, so `..` leads to the other versions.
      { text: version, items: versions.map((one: string) => ({ text: one, link: `/../${one}/`, target: '_self' })) },
    ],
    sidebar,
    outline: { level: [2, 3] },
  },
})
