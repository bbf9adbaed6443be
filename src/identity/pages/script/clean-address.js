// Takes query and fragment out of the address bar and its history: a code, a state or tokens of a provider.
history.replaceState(null, '', location.pathname)
