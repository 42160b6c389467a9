// The site shows the pages of docs/ as they are. Its sidebar is the list of docs/README.md.
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = 'https://github.com/falldue/falldue'
const docs = fileURLToPath(new URL('../../docs/', import.meta.url))

const sidebar = readFileSync(docs + 'README.md', 'utf8').split('\n## ').slice(1).map((section) => ({
  text: section.split('\n', 1)[0],
  items: [...section.matchAll(/^- \[(.+?)\]\((.+?)\.md\)/gm)].map(([, text, page]) => ({ text, link: '/' + page })),
}))

// outside returns the address of a link that leaves docs/, or undefined.
function outside(page, link) {
  if (/^(https?:|mailto:|#)/.test(link)) return undefined
  const path = posix.join('docs', posix.dirname(page), link)
  return path.startsWith('docs/') ? undefined : `${repository}/blob/main/${path}`
}

export default {
  title: 'falldue',
  description: 'Background tasks for Go on the database you already run',
  srcDir: '../docs',
  outDir: './dist',
  cacheDir: './.vitepress/cache',
  // The pages lie outside this folder, which has the modules.
  vite: { resolve: { alias: [{ find: /^vue(?=\/|$)/, replacement: fileURLToPath(new URL('../node_modules/vue', import.meta.url)) }] } },
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: false,
  // Tables have many columns: they get small cells, more width, and no column of single letters on phones. A name in
  // the first column, such as --older-than, does not break at its hyphens.
  head: [['style', {}, `
    .vp-doc th, .vp-doc td { padding: 6px 8px; font-size: 13px; line-height: 20px; min-width: 5.5em }
    .vp-doc td code { font-size: 12px; padding: 2px 3px }
    .vp-doc td:first-child code.word { white-space: nowrap }
    .VPDoc.has-aside .content-container { max-width: 860px !important }
    .VPDoc .aside { max-width: 216px !important }
    .VPDoc .aside-container { width: 184px !important }
  `]],
  lastUpdated: false,
  markdown: {
    config(md) {
      const inline = md.renderer.rules.code_inline
      md.renderer.rules.code_inline = (tokens, i, ...rest) => {
        if (!tokens[i].content.includes(' ')) tokens[i].attrJoin('class', 'word')
        return inline(tokens, i, ...rest)
      }
      // VitePress styles only fenced code: without this, long lines of indented code would widen the page.
      md.renderer.rules.code_block = (tokens, i, ...rest) => {
        tokens[i].info = 'text'
        return md.renderer.rules.fence(tokens, i, ...rest)
      }
      md.core.ruler.push('links-outside', ({ tokens, env }) => {
        for (const token of tokens.flatMap((t) => t.children ?? [])) {
          const link = token.type === 'link_open' && token.attrGet('href')
          const address = link && outside(env.relativePath === 'index.md' ? 'README.md' : env.relativePath, link)
          if (address) token.attrSet('href', address)
        }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    sidebar,
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
    docFooter: { prev: false, next: false },
  },
}
