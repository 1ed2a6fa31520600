/** Lets pollers ask for messages only while there is room for the answers. */
export interface Room {
  /** Resolves when there is room; what it answers gives the place back. */
  reserve(): Promise<() => void>
  /** Things have changed. */
  look(): void
}

/** `hasRoom` is told how many are asking already. */
export function createRoom(hasRoom: (asking: number) => boolean): Room {
  let asking = 0
  const waiters: (() => void)[] = []
  const look = (): void => {
    while (waiters.length > 0 && hasRoom(asking)) {
      asking++
      waiters.shift()!()
    }
  }
  const release = (): void => {
    asking--
    look()
  }
  return {
    look,
    async reserve() {
      const admitted = new Promise<void>((resolve) => waiters.push(resolve))
      look()
      await admitted
      return release
    },
  }
}
