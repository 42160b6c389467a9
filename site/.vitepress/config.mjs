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
  lastUpdated: false,
  markdown: {
    config(md) {
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
