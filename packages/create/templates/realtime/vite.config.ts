import { defineConfig } from 'vite'

/** The page and Signalbox have one origin: the server of the page passes calls of `/api/` on. */
const proxy = { '/api/': process.env.SIGNALBOX_URL ?? 'http://localhost:3000' }

export default defineConfig({ server: { proxy }, preview: { proxy } })
