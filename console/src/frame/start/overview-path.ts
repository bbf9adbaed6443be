/** Whether a path is that of the overview, with which the console begins. */
export const isOverview = (path: string) => /^\/console(?:\/(?:overview)?)?$/.test(path)
