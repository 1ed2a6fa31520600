/** Keys, as they are printed on keyboards: "g o" is two of them. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <>
      {keys.split(' ').map((key) => (
        <span class="kbd" key={key}>
          {key}
        </span>
      ))}
    </>
  )
}
