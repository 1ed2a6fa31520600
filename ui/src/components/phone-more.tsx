/** On phones the tabs have five places: the other pages are below each page. */
import { href, place } from '../router.js'
import { Icon } from './icon.js'
import { MORE } from './sidebar.js'

export function PhoneMore() {
  return (
    <nav class="phone-more" aria-label="Other pages">
      {MORE.map(({ page, text }) => (
        <a key={page} href={href(page)} {...(place.value?.page === page && { 'aria-current': 'page' })}>
          <Icon name={page} />
          {text}
        </a>
      ))}
    </nav>
  )
}
