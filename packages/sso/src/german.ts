import type { Texts } from './english.ts'

/** The texts of the question in German. */
export const german: Texts = {
  title: 'Als anderer Benutzer fortfahren?',
  titleNamed: 'Als {to} fortfahren?',
  text: 'Sie sind hier als jemand anderes angemeldet. Fahren Sie nur fort, wenn Sie diese App gerade selbst geöffnet haben.',
  textNamed:
    'Sie sind hier als {from} angemeldet. Fahren Sie nur fort, wenn Sie diese App gerade selbst geöffnet haben.',
  button: 'Als der andere Benutzer fortfahren',
  buttonNamed: 'Als {to} fortfahren',
  stay: 'So bleiben',
  stayNamed: '{from} bleiben',
}
