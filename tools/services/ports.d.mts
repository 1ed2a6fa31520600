/** So many different ones: each is held until all are found. */
export function freePorts(count: number): Promise<number[]>
export function freePort(): Promise<number>
/** Two of them, so far apart. */
export function freePortsApart(distance: number): Promise<[number, number]>
