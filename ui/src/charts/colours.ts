/** The colours of charts: tokens are registered as colours, so that what is computed is what a canvas takes. */
export function colour(token: string, alpha = 1): string {
  const computed = getComputedStyle(document.documentElement).getPropertyValue(`--c-${token}`)
  if (alpha === 1) return computed
  return computed.replace(
    /^rgba?\(([^)]*)\)$/,
    (_, parts: string) =>
      `rgb(${parts
        .split(/[\s,/]+/)
        .slice(0, 3)
        .join(' ')} / ${alpha})`,
  )
}
