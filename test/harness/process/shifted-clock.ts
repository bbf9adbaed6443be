/**
 * Loaded before the service (`node --import`): sets the clock of its machine this many milliseconds ahead, and from SIGUSR2 on
 * by the second number. `TEST_CLOCK_SHIFTS_MS=3000,3888000000`
 */
const [first = 0, second = first] = (process.env.TEST_CLOCK_SHIFTS_MS ?? '0').split(',').map(Number)
const readMachine = Date.now
let shiftMs = first
Date.now = () => readMachine() + shiftMs
process.on('SIGUSR2', () => {
  shiftMs = second
})
