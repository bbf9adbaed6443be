import { listExplained } from './explain.ts'

/** Survivors of `src/carriage`. */
export const EXPLAINED_OF_CARRIAGE = listExplained({
  'src/carriage/relay/loss.ts': [
    [
      'only for the types: undefined is sorted behind all others',
      [
        'const found = [ofOwn, ofAdopted].filter((each) => each !== undefined)',
        '.filter((each) => each !== undefined) -> (nothing)',
      ],
    ],
    [
      'a replaced log is certain, so that any number above 0 puts it first',
      [
        "const rankOf = ({ loss, isCertain }: Difference) => Number(loss === 'replaced') * 2 + Number(isCertain)",
        '* -> /',
      ],
    ],
  ],
})
