import type { PageTexts } from './page-text.ts'

/** The texts of the OAuth pages in German. */
export const GERMAN: PageTexts = {
  lang: 'de',
  texts: {
    'account.again': 'Erneut anmelden',
    'account.choose': 'Konto wählen',
    'account.continue': 'Weiter als {email}',
    'account.purpose': 'um mit {client} fortzufahren',
    'account.signed-in': 'Angemeldet als {email}',
    'account.switch': 'Anderes Konto verwenden',
    'app.unnamed': 'der App',
    'code.aborted': 'Die Anfrage wurde abgelehnt. Ihr Gerät erhält keinen Zugriff.',
    'code.ask': 'Geben Sie den Code ein, den Ihr Gerät anzeigt.',
    'code.confirm': 'Ist das Ihr Gerät?',
    'code.confirm-device':
      '{client} bittet auf einem Gerät um Zugriff auf Ihr Konto. Das Gerät muss diesen Code anzeigen:',
    'code.connect': 'Gerät verbinden',
    'code.continue': 'Weiter',
    'code.done': 'Gerät verbunden',
    'code.done-next': '{client} macht auf Ihrem Gerät weiter. Sie können diese Seite schließen.',
    'code.expired': 'Dieser Code ist abgelaufen. Beginnen Sie auf Ihrem Gerät von vorn.',
    'code.failed': 'Die Anfrage konnte nicht abgeschlossen werden. Versuchen Sie es noch einmal.',
    'code.label': 'Code',
    'code.no': 'Nein, ablehnen',
    'code.title-error': 'Fehler: Gerät verbinden',
    'code.unknown': 'Dieser Code ist nicht bekannt. Vergleichen Sie ihn mit dem auf Ihrem Gerät.',
    'code.unnamed': 'Eine App',
    'code.used': 'Dieser Code wurde schon verwendet. Beginnen Sie auf Ihrem Gerät von vorn.',
    'code.warning':
      'Fahren Sie nur fort, wenn Sie dies gerade selbst begonnen haben, auf einem Gerät, das vor Ihnen steht. Sonst erhält den Zugriff, wer Ihnen diesen Code geschickt hat.',
    'code.yes': 'Ja, weiter',
    'consent.allow': 'Erlauben',
    'consent.ask': '{client} erlauben?',
    'consent.ask-more': '{client} bittet um mehr',
    'consent.by': 'von {publisher}.',
    'consent.deny': 'Nicht erlauben',
    'consent.device': 'Sie läuft auf einem Gerät, das einen Code anzeigt.',
    'consent.end': 'Sie können diesen Zugriff jederzeit in Ihrem Konto entfernen. Die App erfährt Ihr Passwort nie.',
    'consent.host': 'Ihre Antwort geht an {host}.',
    'consent.native': 'Es ist eine App auf Ihrem Gerät.',
    'consent.new': 'Neu',
    'consent.scopes': 'Sie möchte',
    'consent.scopes-more': 'Sie darf, wenn Sie es erlauben',
    'consent.title': '{client} erlauben',
    'consent.unchecked': 'Die App hat sich selbst registriert: Niemand hier hat sie geprüft.',
    'continue.link': 'Weiter',
    'continue.next': 'Weiter zu {client}.',
    'continue.signed-in': 'Sie sind angemeldet',
    'engine.added': 'Sie können ihr außerdem erlauben',
    'engine.prove': 'Wer entscheidet?',
    'engine.why': 'Eine App bittet um Zugriff auf Ihr Konto. Melden Sie sich an, um zu sehen, worum sie bittet.',
    'engine.with': 'Weiter mit {provider}',
    'error.title': 'Diese Anfrage kann nicht fortgesetzt werden',
    'error.what':
      'Die App, die Sie hierher geschickt hat, hat eine Anfrage gestellt, die dieser Dienst nicht annimmt. Es wurde nichts an sie weitergegeben. Sagen Sie den Betreibern der App:',
    'sign-out.app':
      '{client} bittet darum, Ihre Sitzung in diesem Browser zu beenden, auch in den Apps, die Sie damit geöffnet haben.',
    'sign-out.ask': 'Abmelden?',
    'sign-out.close': 'Sie können diese Seite schließen.',
    'sign-out.done': 'Fertig',
    'sign-out.signed-out': 'Abgemeldet',
    'sign-out.stay': 'Angemeldet bleiben',
    'sign-out.title': 'Abmelden',
    'sign-out.unnamed': 'Eine App',
    'submit.title': 'Einen Moment',
    'submit.what': 'Es geht gleich weiter. Wenn nichts geschieht, drücken Sie auf den Knopf.',
  },
  scopes: {
    openid: {
      title: 'Sie anmelden',
      description: 'Die App erhält eine Kennung, die für Sie steht und sich nicht ändert.',
    },
    profile: {
      title: 'Ihren Namen und Ihr Bild sehen',
      description: 'Die App liest Ihren Namen und die Adresse Ihres Bildes.',
    },
    email: {
      title: 'Ihre E-Mail-Adresse sehen',
      description: 'Die App liest Ihre E-Mail-Adresse und ob sie bestätigt ist.',
    },
    offline_access: {
      title: 'den Zugriff behalten, während Sie fort sind',
      description: 'Die App erneuert ihren Zugriff, ohne Sie zu fragen, bis Sie ihn entfernen.',
    },
    'session:read': {
      title: 'sehen, wer Sie sind und was Sie hier dürfen',
      description: 'Die App liest Ihren Namen, Ihre E-Mail-Adresse, Ihre Konten und Ihre Rechte.',
    },
    'account:read': {
      title: 'Ihre Konten sehen',
      description: 'Die App liest die Namen der Konten, zu denen Sie gehören.',
    },
    'contract:read': { title: 'Ihre Verträge sehen', description: 'Die App listet Verträge auf und liest sie.' },
    'contract:write': {
      title: 'Verträge anlegen, ändern und löschen',
      description: 'Die App ändert Verträge in Ihrem Namen.',
    },
    'webhook:read': {
      title: 'Ihre Webhooks sehen',
      description: 'Die App liest, wohin Ereignisse gesendet werden, welche, und was aus jeder Zustellung wurde.',
    },
    'webhook:write': {
      title: 'Webhooks anlegen, ändern und löschen',
      description:
        'Die App bestimmt, wohin Ereignisse gesendet werden, erfährt die Geheimnisse, die sie signieren, und wiederholt Zustellungen.',
    },
    'event:read': {
      title: 'sehen, was geschehen ist',
      description: 'Die App liest Ereignistypen und die Ereignisse Ihrer Konten.',
    },
    'event:publish': {
      title: 'Ereignisse veröffentlichen',
      description: 'Die App veröffentlicht Ereignisse, die einem anderen Dienst gehören.',
    },
  },
}
