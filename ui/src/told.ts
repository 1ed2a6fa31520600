/** What the server has told the page in attributes of `<html>`: known before the first request. */
const { base = '', title = 'oncebox', environment, readOnly } = document.documentElement.dataset

export const told = { base, title, environment, readOnly: readOnly !== undefined } as const
