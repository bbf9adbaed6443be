/**
 * The words that common and leaked passwords are built on: first guesses, names, sports, teams, brands, animals, love and
 * swear words, in several languages, lower case. `isCommonPassword` adds what users add: digits, years, punctuation,
 * other letters of the same look, repetition. Written for this service from the kinds of entries that published rankings
 * of leaked passwords agree on; extend it freely.
 */
const WORDS = `
password passwort passord wachtwoord contrasena contraseña senha motdepasse haslo heslo salasana parola sifre lozinka
parole jelszo losenord adgangskode kodeord passwd passphrase passcode mypassword thepassword newpassword oldpassword
yourpassword nopassword password1234 changeme changeit letmein letmeinnow welcome welcomeback welcometo login logmein
signin signup secret topsecret secretword default guest visitor public private admin administrator sysadmin superadmin
adminadmin root rootroot toor superuser user username test tester testing testtest testuser testpassword temp temporary
temppass demo sample example service server system network internet online website webmaster master mastermaster manager
office company business support helpdesk hello hellohello helloworld hithere goodbye goodmorning goodnight please
thankyou whatever nothing something anything everything unknown nobody somebody trustno trustnoone open opensesame
abracadabra mustang access accessgranted enter qwerty qwertyuiop qwertz qwertzuiop azerty azertyuiop asdfgh asdfghjkl
zxcvbn zxcvbnm qweasd qweasdzxc qazwsx qazwsxedc wasd asdasd qweqwe zxczxc abc abcd abcde abcdef abcdefg abcdefgh abcabc
iloveyou iloveu iloveme ilovegod ilovemom ilovejesus ilovemyself ilovemyfamily iloveyouso loveyou loveme lovely lover
lovers lovelove love forever foreverlove always truelove mylove myself babygirl babyboy baby babyblue babydoll honey
honeybun sweetheart sweetie sweety sweet darling angel angels angelito princess princesa prince queen king kingking
beautiful beauty pretty prettygirl sexy sexygirl sexyboy hottie cutie cutiepie handsome gorgeous superstar rockstar
superman batman spiderman ironman wolverine catwoman wonderwoman superhero avengers deadpool starwars darthvader
skywalker jedi jedimaster startrek enterprise matrix terminator godzilla gandalf frodo hobbit legolas harrypotter potter
hogwarts hermione dumbledore pokemon pikachu charizard naruto sasuke goku dragonball digimon mario luigi zelda sonic
nintendo playstation xbox minecraft roblox fortnite counterstrike warcraft starcraft diablo halflife leagueoflegends
football soccer baseball basketball softball volleyball hockey tennis golf golfer swimming swimmer running runner
cricket rugby boxing wrestling skateboard snowboard surfing surfer fishing fisherman hunting hunter racing racecar
motocross karate ninja samurai champion winner player gamer coach captain arsenal chelsea liverpool manchester everton
tottenham barcelona realmadrid madrid juventus milan bayern dortmund celtic rangers lakers yankees redsox cowboys
steelers packers patriots eagles raiders broncos dolphins giants bears bulls warriors spurs celtics heat penguins
ferrari porsche mercedes benz bmw audi toyota honda yamaha suzuki kawasaki harley harleydavidson davidson corvette
camaro chevrolet chevy dodge ford jaguar lamborghini maserati nissan skyline volvo volkswagen vauxhall subaru jeep
google facebook instagram youtube twitter linkedin microsoft windows apple iphone samsung galaxy nokia motorola android
computer laptop desktop keyboard monitor printer internetexplorer chrome firefox linux ubuntu debian redhat oracle cisco
dragon tiger lion panther leopard cheetah bear wolf fox eagle falcon hawk phoenix raven shark dolphin whale horse pony
unicorn monkey gorilla elephant giraffe zebra rabbit bunny hamster kitty kitten kittycat cat cats doggie doggy dog dogs
puppy chicken duck turtle snake spider scorpion butterfly ladybug bumblebee buster rocky maggie shadow smokey tigger
bandit bailey ginger pepper sammy lucky simba nala rusty oreo cookie cookies cupcake chocolate vanilla strawberry banana
orange cherry peach peaches apples pineapple lemon mango coffee cappuccino cheese cheesecake bacon pizza burger noodle
peanut butter sugar candy bubbles bubblegum lollipop popcorn pumpkin pickle potato tomato whiskey vodka tequila budweiser
heineken guinness corona cocacola pepsi starbucks nutella snickers skittles sunshine sunflower sunset sunrise sunday
monday tuesday wednesday thursday friday saturday january february march april may june july august september october
november december spring summer summertime autumn winter wintertime snow snowball snowflake snowman rainbow thunder
lightning storm hurricane tornado ocean mountain river island beach flower flowers rose roses lily daisy jasmine violet
orchid tulip blossom garden forest diamond crystal silver gold golden platinum purple yellow green blue red black white
pink scarlet blackcat blackbird bluebird bluesky redrose greenday greenlight christmas halloween easter birthday holiday
vacation freedom liberty justice peace peaceful harmony heaven paradise eternity infinity destiny fantasy dreamer dreams
magic magical mystery spirit faith hope grace blessed blessing believe jesus jesuschrist christ god godisgood lord
church prayer amen allah bismillah muhammad mohammed krishna buddha maria mary joseph moses david solomon samuel gabriel
michael michelle michele jennifer jessica ashley amanda nicole stephanie elizabeth melissa samantha danielle rebecca
christine christina catherine katherine kathleen patricia barbara margaret dorothy victoria vanessa veronica angelina
angela alexandra alexander alexandria natalie natalia natasha isabella gabriella valentina carolina caroline charlotte
sophie sophia olivia emily emma hannah abigail madison mackenzie brittany courtney lauren rachel sarah laura julia
juliana monica sandra claudia daniela mariana fernanda alejandra alejandro fernando francisco rodrigo ricardo roberto
eduardo sebastian santiago antonio carlos jorge miguel manuel pedro pablo diego javier andrea andrew anthony
benjamin brandon brandy cameron charles charlie chester christian christopher daniel dennis dominic donald douglas
dylan edward elijah eric ethan francis frank gareth george gordon gregory hector henry isaac jackson jacob jake james
jason jasper jeffrey jeremy jesse john johnny johnson jonathan jordan joshua justin keith kelly kenneth kevin kimberly
lawrence leonard leonardo logan lucas marcus mario martin martina mason matthew max maxwell melanie mitchell morgan
nathan nicholas oliver oscar parker patrick paul peter philip phillip randy raymond richard robert rodney roger ronald
ryan samson scooter scott simon stephen steven stewart taylor teresa theresa thomas timothy trevor tyler victor vincent
walter wendy william williams winston zachary anderson armstrong jackson jefferson smith miller wilson martinez
rodriguez hernandez gonzalez garcia lopez perez sanchez america american brazil brasil canada england france germany
deutschland italia italy espana mexico russia ukraine polska poland portugal turkey turkiye istanbul india pakistan
bangladesh indonesia malaysia singapore philippines vietnam thailand japan tokyo china beijing shanghai hongkong taiwan
korea australia sydney melbourne newzealand africa nigeria kenya egypt london paris berlin hamburg munich vienna rome
roma moscow newyork newyorkcity chicago boston dallas houston denver detroit phoenix miami orlando atlanta seattle
portland california texas florida georgia virginia washington hollywood lasvegas vegas hawaii brooklyn liverpoolfc
manutd manchesterunited fcbarcelona chelseafc arsenalfc metallica nirvana slipknot eminem tupac beatles acdc ironmaiden
megadeth blink linkinpark greenday madonna beyonce rihanna shakira michaeljackson elvis elvispresley music musica
musician guitar guitarist drummer piano violin saxophone trumpet hiphop rocknroll rockandroll heavymetal punkrock
jordan23 nascar fuckyou fuckoff fuckme fucker motherfucker asshole bullshit bitch bitches biteme bastard dickhead
pussycat blowjob boobies bigdick bigdaddy bigboy biggie daddy daddysgirl mommy mother father brother sister grandma
grandpa family myfamily friend friends bestfriend bestfriends myfriend husband wifey boyfriend girlfriend cheese
schatz schatzi liebe geheim hallo hallohallo willkommen sommer fussball frankfurt bonjour soleil chouchou doudou
loulou marseille jetaime amour nicolas camille tequiero teamo amor amorcito mivida corazon estrella bonita hermosa
amigos hola holahola ciao ciaociao napoli juventus ferrari amoremio tiamo stella brasilia saudade flamengo corinthians
palmeiras saopaulo deusefiel euteamo kochanie misiek polska dupa matrix marina privet lyubov parol natasha vladimir
nastya svetlana dmitry woaini woaini1314 sayang cintaku bismillah123 monalisa picasso einstein newton napoleon caesar
pirate pirates cowboy soldier sergeant marines airforce military police doctor nurse teacher student college university
school highschool lawyer engineer pilot driver trucker fireman firefighter policeman sniper killer assassin destroyer
predator gangster thuglife hacker hackers cracker elite leet legend legendary infinity genius creative creator success
winning money moneymoney millionaire billionaire dollar dollars cash bitcoin blockchain trading banker insurance
trumpet trump obama putin biden covid corona quarantine vaccine zoom telegram whatsapp
`

/** The words above, as a set. */
export const COMMON_WORDS: ReadonlySet<string> = new Set(WORDS.split(/\s+/).filter((word) => word !== ''))
