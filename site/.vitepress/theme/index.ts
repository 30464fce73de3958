// The theme without its fonts: pages use those of the reader's system.
import { withBase } from 'vitepress'
import theme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import './style.css'

// The theme's own page for unknown addresses has no `main` element, which screen readers need.
const notFound = () =>
  h('main', { class: 'not-found' }, [h('h1', 'There is no such page'), h('a', { href: withBase('/') }, 'All pages')])

export default { extends: theme, Layout: () => h(theme.Layout, null, { 'not-found': notFound }) }
