// Sends the form of a page that only hands it on. Runs in the browser, after the page was read.
document.forms[0].submit()
