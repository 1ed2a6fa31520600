/** Empty unless we are root: then a server runs as us. */
export interface ServerUser {
  uid?: number
  gid?: number
}

export function serverUser(): Promise<ServerUser>

/** The words of setpriv(1) that become that user. */
export function dropTo(user?: ServerUser): string[]
