// Sends a chosen picture, made small by the browser, with the form that it stands in. Runs in the browser.
const SIDE = 512

async function shrink(file) {
  const image = await createImageBitmap(file)
  const scale = Math.min(1, SIDE / Math.min(image.width, image.height))
  const canvas = document.createElement('canvas')
  canvas.width = Math.max(1, Math.round(image.width * scale))
  canvas.height = Math.max(1, Math.round(image.height * scale))
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height)
  return canvas.toDataURL('image/webp', 0.9)
}

for (const form of document.querySelectorAll('form[data-picture]')) {
  const input = form.querySelector('input[type=file]')
  const status = form.querySelector('[role=status]')
  form.hidden = false
  input.addEventListener('change', async () => {
    const [file] = input.files
    if (!file) return
    try {
      const url = await shrink(file)
      form.elements.image.value = url
        .slice(url.indexOf(',') + 1)
        .replaceAll('+', '-')
        .replaceAll('/', '_')
      form.submit()
    } catch {
      status.textContent = form.dataset.picture
    }
  })
}
