/** The health check of the image: exits 0 when the process answers `GET /livez` (docs/deployment.md, Health checks). */
const url = `http://127.0.0.1:${process.env.PORT || 3000}/livez`
const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch(() => undefined)
process.exitCode = answer?.ok ? 0 : 1
