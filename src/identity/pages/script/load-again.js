// Loads a page that is not ready again after two seconds, with its fragment: a refresh of the page's head would stay in it.
setTimeout(() => location.reload(), 2_000)
