/** The texts of the question in English, which names every text. `{name}` is a place for a value. */
export const english = {
  title: 'Continue as another user?',
  titleNamed: 'Continue as {to}?',
  text: 'You are signed in here as somebody else. Continue only if you have just opened this app yourself.',
  textNamed: 'You are signed in here as {from}. Continue only if you have just opened this app yourself.',
  button: 'Continue as the other user',
  buttonNamed: 'Continue as {to}',
  stay: 'Stay as you are',
  stayNamed: 'Stay {from}',
}

/** Every text of the question, in one language. */
export type Texts = Readonly<Record<keyof typeof english, string>>
