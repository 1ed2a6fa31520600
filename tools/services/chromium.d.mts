/** The path of the program. Rejects with the command to run if there is none and it cannot be installed. */
export function findChromium(): Promise<string>
