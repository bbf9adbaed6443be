/** The names of cells, as the constraint of their table has it. */
export const CELL_NAME = /^[a-z][a-z0-9-]{0,30}$/
