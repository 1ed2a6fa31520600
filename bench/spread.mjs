/** Samples as figures: the median, and between what the others are. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

export function spread(values) {
  return {
    median: rounded(median(values)),
    min: rounded(Math.min(...values)),
    max: rounded(Math.max(...values)),
    samples: values.map(rounded),
  }
}

/** Small figures keep a digit after the point. */
export function rounded(value) {
  return Math.abs(value) < 10 ? Number(value.toFixed(1)) : Math.round(value)
}
